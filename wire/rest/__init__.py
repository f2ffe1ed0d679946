"""The API's answers and questions as both sides know them; stdlib and pydantic only."""
