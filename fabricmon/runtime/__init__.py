"""What the live agent runs on: threads, ticks, notifications, logs."""
