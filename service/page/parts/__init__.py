"""What pages are made of: a Python name and its browser half each."""
