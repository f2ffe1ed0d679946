"""``alarmcast admin``, all of it: what goes through a running service, and what works on the folder itself."""

from service.cli import backup, broker, copy_database, tls
from service.cli.admin import app

app.command("backup")(backup.backup_command)
app.command("restore")(backup.restore_command)
app.command("copy-database")(copy_database.copy_database)
app.command("broker-init")(broker.broker_init)
app.command("broker-adopt")(broker.broker_adopt)
app.command("broker-repair")(broker.broker_repair)
app.command("tls-init")(tls.tls_init)
