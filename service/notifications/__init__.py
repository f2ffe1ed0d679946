"""Who is notified of what: notifications, webhooks, shelving, acknowledgement, maintenance."""
