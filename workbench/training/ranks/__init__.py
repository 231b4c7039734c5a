"""Training on several processes: a step of many ranks equals the step of one."""
