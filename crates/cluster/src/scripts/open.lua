-- Reads the state of the store; sets an empty one up. Arguments: format, secret check, new epoch.
if redis.call('HEXISTS', META, 'epoch') == 0 then
  -- Data without metadata cannot be used.
  redis.call('DEL', META, ENTRY, AT, LEASE, TOMB, LOG)
  redis.call('HSET', META, 'format', ARGV[1], 'secret', ARGV[2], 'epoch', ARGV[3], 'seq', 0, 'token', '')
end
local meta = redis.call('HMGET', META, 'format', 'secret', 'epoch', 'seq', 'token')
-- A store of another version, or with another secret, is left as it is.
if meta[1] == ARGV[1] and meta[2] == ARGV[2] then
  -- A record with a later number than the last change is another program's; nodes would read it again and again.
  local last = redis.pcall('XREVRANGE', LOG, '+', '-', 'COUNT', 1)
  if last.err or (last[1] and tonumber(string.match(last[1][1], '^%d+')) > (tonumber(meta[4] or 0) or 0)) then
    redis.call('DEL', LOG)
  end
end
return { meta[1] or '', meta[2] or '', meta[3] or '', meta[4] or '', meta[5] or '', string.format('%.0f', now()) }
