-- Reads the state of the store, and shows that it takes changes; sets an empty one up. Arguments: format, secret check, new epoch.
local format, secret, epoch = ARGV[1], ARGV[2], ARGV[3]
local ms = string.format('%.0f', now())
-- The log is not among them: one of another type is deleted below.
for index, expected in pairs({ [1] = 'hash', [2] = 'hash', [3] = 'hash', [4] = 'zset', [5] = 'zset', [7] = 'hash' }) do
  local problem = wrong_type(KEYS[index], expected)
  if problem then return problem end
end
local meta = redis.call('HMGET', META, 'format', 'secret', 'epoch', 'seq', 'token')
-- A store of another version, or with another secret, is left as it is.
if is_number(meta[1]) and meta[1] ~= format then return { meta[1], '', epoch, '0', '', ms } end
if meta[2] and meta[2] ~= secret then return { format, meta[2], epoch, '0', '', ms } end
-- Before any other change: this one needs memory, so that a store without memory, or a replica, is found here. Commands that free
-- memory succeed even then, and so does everything that follows them in a script.
redis.call('HSET', META, 'opened', ms)
local is_complete = is_number(meta[1]) and meta[2] and meta[3] and #meta[3] == 16 and is_number(meta[4])
if not is_complete then
  -- Data without metadata cannot be used. The nodes write everything again.
  redis.call('DEL', META, ENTRY, AT, LEASE, TOMB, LOG)
  redis.call('HSET', META, 'format', format, 'secret', secret, 'epoch', epoch, 'seq', 0, 'token', '')
  return { format, secret, epoch, '0', '', ms }
end
-- Nothing but the last record of the log depends on it; nodes that know another one read everything again.
if not meta[5] then redis.call('HSET', META, 'token', '') end
-- A record with a later number than the last change is another program's; nodes would read it again and again.
local last = redis.pcall('XREVRANGE', LOG, '+', '-', 'COUNT', 1)
if last.err or (last[1] and tonumber(string.match(last[1][1], '^%d+')) > tonumber(meta[4])) then
  redis.call('DEL', LOG)
end
return { meta[1], meta[2], meta[3], meta[4], meta[5] or '', ms }
