-- Removes a server. Arguments: epoch, token, ID, reason, deadline.
local epoch, token, id, reason, deadline = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
if not is_epoch(epoch) then return { 'epoch' } end
if reason == 'unregistered' then redis.call('ZADD', TOMB, 'GT', string.format('%.0f', deadline), id) end
local value = redis.call('HGET', ENTRY, id)
local old = parse(value)
if not old then return { 'done', '0' } end
if latest_lease(id) > deadline + TOLERANCE then return { 'stale', value } end
return { 'done', string.format('%.0f', delete(id, old, reason, token)) }
