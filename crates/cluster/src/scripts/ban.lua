-- Adds, changes or lifts a ban. Arguments: epoch, token, subject, value, time of the decision and end of the ban (ms since 1970; 0 if
-- it has no end), whether this is a live decision. It supersedes all earlier ones, whatever the clocks say.
local epoch, token, subject, value, since, ends = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
local BAN = KEYS[8]
if not is_epoch(epoch) then return { 'epoch' } end
local old = redis.pcall('HGET', BAN, subject)
-- The key has another program's value. The list does not depend on it, and nodes write all bans when it is gone.
if type(old) == 'table' then return { 'stale', '' } end
-- A time that is not exact here is another program's: no decision could be later.
local known = old and string.match(old, '^%d+') or ''
known = #known <= 15 and tonumber(known) or 0
if ARGV[7] == '1' then since = math.max(since, known + 1) end
if known > since then return { 'stale', '' } end
value = string.format('%.0f ', since) .. ends .. ' ' .. value
if value == old then return { 'done', '0' } end
redis.call('HSET', BAN, subject, value)
local seq = next_seq()
append('ban', subject, value, token, seq)
return { 'done', string.format('%.0f', seq) }
