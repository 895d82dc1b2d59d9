"""Task lint: does a problem's reference compute something that only honest work can give?"""
