"""What every route uses: permissions, problems, pagination, rate limits, server-sent events."""
