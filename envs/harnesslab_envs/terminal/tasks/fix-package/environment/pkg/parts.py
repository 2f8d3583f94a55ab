{{PARTS}}
