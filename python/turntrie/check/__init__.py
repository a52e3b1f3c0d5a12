"""What a person about to adopt turntrie wants to see: is it exact on my model, and native?"""
