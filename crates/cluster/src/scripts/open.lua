-- Reads the state of the store; sets an empty one up. Arguments: format, secret check, new epoch.
if redis.call('HEXISTS', META, 'epoch') == 0 then
  -- Remains of a content without its description are of no use.
  redis.call('DEL', META, ENTRY, AT, LEASE, TOMB, LOG)
  redis.call('HSET', META, 'format', ARGV[1], 'secret', ARGV[2], 'epoch', ARGV[3], 'seq', 0, 'token', '')
end
local meta = redis.call('HMGET', META, 'format', 'secret', 'epoch', 'seq', 'token')
return { meta[1] or '', meta[2] or '', meta[3] or '', meta[4] or '', meta[5] or '', string.format('%.0f', now()) }
