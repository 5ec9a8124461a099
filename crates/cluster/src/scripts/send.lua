-- Sends a message to all nodes. Keys: the stream. Arguments: message, time for which messages are kept in ms.
local time = now()
local function add()
  return redis.call('XADD', KEYS[1], 'MINID', '~', string.format('%.0f', time - tonumber(ARGV[2])), '*', 'm', ARGV[1])
end
-- Every message has a later ID than the one before it. If the clock was set back, all would have the time that it showed before, and
-- none would be old enough to be dropped: the stream begins again, and nodes continue with the newest message.
if tonumber(string.match(add(), '^%d+')) > time + TOLERANCE then
  redis.call('DEL', KEYS[1])
  add()
end
-- Messages are large: their number is bounded as well, whatever the clock shows.
redis.call('XTRIM', KEYS[1], 'MAXLEN', '~', 20000)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 'done'
