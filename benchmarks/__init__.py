"""Side-by-side figures: each path of Alarmcast against a limit measured in the same run."""
