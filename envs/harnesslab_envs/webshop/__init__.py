"""WebShop: find and buy the product that an instruction asks for, in a shop told as text. See ``README.md``."""
