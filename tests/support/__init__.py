"""What tests start and steer: the real server, the provider double, effects that leave traces."""
