"""What operators answer to notifications and expected alarms; shown, counted and exported, never learned from."""
