"""Clock, schedules, selection, presence; servers, rounds and requests."""
