-- The ID of the newest message, without the message. Keys: the stream.
local problem = wrong_type(KEYS[1], 'stream')
if problem then return problem end
local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
return newest[1] and newest[1][1] or '0-0'
