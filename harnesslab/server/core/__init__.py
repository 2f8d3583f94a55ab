"""The sidebar's questions and actions, without any web server: plain functions over labs, plain JSON back."""
