-- The end of the script: it takes the step that is asked for, and returns its reply as JSON.

return cjson.encode(steps[given.step]())
