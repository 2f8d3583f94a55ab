{{TESTS}}
