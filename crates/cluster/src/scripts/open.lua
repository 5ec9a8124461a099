-- Reads the state of the store; sets an empty one up. Arguments: format, secret check, new epoch.
if redis.call('HEXISTS', META, 'epoch') == 0 then
  -- Data without metadata cannot be used.
  redis.call('DEL', META, ENTRY, AT, LEASE, TOMB, LOG)
  redis.call('HSET', META, 'format', ARGV[1], 'secret', ARGV[2], 'epoch', ARGV[3], 'seq', 0, 'token', '')
end
-- A record with a later number than the last change is another program's; nodes would read it again and again.
local seq = tonumber(redis.call('HGET', META, 'seq') or 0) or 0
local last = redis.pcall('XREVRANGE', LOG, '+', '-', 'COUNT', 1)
if last.err or (last[1] and tonumber(string.match(last[1][1], '^%d+')) > seq) then redis.call('DEL', LOG) end
local meta = redis.call('HMGET', META, 'format', 'secret', 'epoch', 'seq', 'token')
return { meta[1] or '', meta[2] or '', meta[3] or '', meta[4] or '', meta[5] or '', string.format('%.0f', now()) }
