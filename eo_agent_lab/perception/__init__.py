"""What finds objects in images."""
