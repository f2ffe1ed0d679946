"""What processes on PostgreSQL lock beside rows and tables, each by a number that means nothing else."""

from enum import IntEnum, unique


@unique
class Advisory(IntEnum):
    """Kept from version to version: processes of two of them may share a database for a while."""

    SCHEMA = 7_311_641  # one migrates, those that start with it wait
    MONTHS = 7_311_642  # one makes the tables of months
    JOBS = 7_311_643  # one worker chooses what to learn
    COPY = 7_311_644  # one copies from or into a database
    SCORING = 0x414C_4152  # commits of events hold it together, scoring holds it alone
    CREDENTIALS = 0x4352_4544  # one changes broker and database together
