-- Sends a message to all nodes. Keys: the stream. Arguments: message, time for which messages are kept in ms.
local time = redis.call('TIME')
local oldest = time[1] * 1000 + math.floor(time[2] / 1000) - tonumber(ARGV[2])
redis.call('XADD', KEYS[1], 'MINID', '~', string.format('%.0f', oldest), '*', 'm', ARGV[1])
-- Messages are large: their number is bounded as well, whatever the clock shows.
redis.call('XTRIM', KEYS[1], 'MAXLEN', '~', 20000)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 'done'
