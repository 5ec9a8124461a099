-- Sends a message to all nodes. Keys: the stream. Arguments: message, time for which messages are kept in ms.
local MAX_MESSAGES, MAX_SIZE = 20000, 64 * 1024 * 1024
local time = now()
local function add(call)
  return call('XADD', KEYS[1], 'MINID', '~', string.format('%.0f', time - tonumber(ARGV[2])), '*', 'm', ARGV[1])
end
-- Every message has a later ID than the one before it. If the clock was set back, all would have the time that it showed before, and
-- none would be old enough to be dropped: the stream begins again, and nodes continue with the newest message.
-- After another program's message with the last possible ID, none can be added; other errors are not about the ID.
local id = add(redis.pcall)
if type(id) == 'table' and not string.find(id.err, ' ID', 1, true) then return id end
if type(id) == 'table' or tonumber(string.match(id, '^%d+')) > time + TOLERANCE then
  redis.call('DEL', KEYS[1])
  add(redis.call)
end
-- Their number and their size are bounded as well, whatever the clock shows. The size is an estimate from the oldest ones.
redis.call('XTRIM', KEYS[1], 'MAXLEN', '~', MAX_MESSAGES)
local size = redis.pcall('MEMORY', 'USAGE', KEYS[1], 'SAMPLES', 50)
if type(size) == 'number' and size > MAX_SIZE then
  redis.call('XTRIM', KEYS[1], 'MAXLEN', '~', math.floor(redis.call('XLEN', KEYS[1]) / 2))
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 'done'
