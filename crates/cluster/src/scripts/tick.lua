-- Ends leases that are due, reports a node, and reads the state of the log. Arguments: epoch, token, node, report.
local epoch, token, node, report = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local NODE = KEYS[7]
if redis.call('HGET', META, 'epoch') ~= epoch then return { 'epoch' } end
local time = now()
local ms = string.format('%.0f', time)

-- After an outage of the store, the nodes renew all leases before any of them ends.
local ticked = tonumber(redis.call('HGET', META, 'ticked') or 0)
local grace = tonumber(redis.call('HGET', META, 'grace') or 0)
if time > ticked + 5000 then
  grace = time + 10000
  redis.call('HSET', META, 'grace', string.format('%.0f', grace))
end
redis.call('HSET', META, 'ticked', ms)
if time >= grace then
  for _, member in ipairs(redis.call('ZRANGE', LEASE, '-inf', ms, 'BYSCORE', 'LIMIT', 0, 500)) do
    redis.call('ZREM', LEASE, member)
    local family, id = string.sub(member, 1, 1), string.sub(member, 2)
    local entry = parse(redis.call('HGET', ENTRY, id))
    if entry and entry[family] and #entry[family] > 0 then
      local key = place(entry.transport, entry[family])
      if redis.call('HGET', AT, key) == id then redis.call('HDEL', AT, key) end
      entry[family] = ''
      if #entry['4'] == 0 and #entry['6'] == 0 then
        delete(id, entry, 'expired', token)
      else
        local seq = next_seq()
        local value = emit(seq, entry)
        redis.call('HSET', ENTRY, id, value)
        append('left', id, value, token, seq)
      end
    end
  end
  redis.call('ZREMRANGEBYSCORE', TOMB, '-inf', string.format('%.0f', time - 120000))
end

redis.call('HSET', NODE, node, ms .. ' ' .. report)
local nodes = redis.call('HGETALL', NODE)
for index = 1, #nodes, 2 do
  local seen = tonumber(string.match(nodes[index + 1], '^%d+') or 0)
  if time - seen > 3600000 then redis.call('HDEL', NODE, nodes[index]) end
end
local meta = redis.call('HMGET', META, 'seq', 'token')
return { 'done', meta[1] or '0', meta[2] or '', ms, nodes }
