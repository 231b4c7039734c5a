"""What several processes do together: a step of many is the step of one."""
