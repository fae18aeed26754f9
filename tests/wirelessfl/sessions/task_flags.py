"""Settings of short runs of two tasks in sessions."""

FLAGS = {"clients": 8, "split": "iid", "rounds": 3, "sessions": 4, "uplink": "fixed"}
TASKS = {
    "schedule": "simultaneous", "hidden": (6,), "chunk": 4,
    "task": ["digits,name=one,lr=0.1", "digits,name=two,lr=0.02"],
}  # fmt: skip
