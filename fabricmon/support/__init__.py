"""What ``fabricmon support`` gathers for somebody who was not there."""
