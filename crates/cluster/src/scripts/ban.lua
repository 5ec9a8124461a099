-- Adds, changes or lifts a ban. Arguments: epoch, token, subject, value, time of the decision (ms since 1970).
local epoch, token, subject, value, since = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local BAN = KEYS[8]
if redis.call('HGET', META, 'epoch') ~= epoch then return { 'epoch' } end
local old = redis.call('HGET', BAN, subject)
if old and tonumber(string.match(old, '^%d+') or 0) > since then return { 'stale', '' } end
value = string.format('%.0f ', since) .. value
redis.call('HSET', BAN, subject, value)
local seq = next_seq()
append('ban', subject, value, token, seq)
return { 'done', string.format('%.0f', seq) }
