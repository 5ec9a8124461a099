-- Lists a server. Arguments: epoch, token, ID, origin, transport, IPv4 endpoint, its lease, IPv6 endpoint, its lease, body.
local epoch, token, id, origin, transport = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local new = { origin = origin, transport = transport, ['4'] = ARGV[6], ['6'] = ARGV[8], body = ARGV[10] }
local leases = { ['4'] = tonumber(ARGV[7]), ['6'] = tonumber(ARGV[9]) }
if not is_epoch(epoch) then return { 'epoch' } end
local value = redis.call('HGET', ENTRY, id)
local old = parse(value)
local current = old and value or ''

local unregistered = redis.call('ZSCORE', TOMB, id)
if unregistered and math.max(leases['4'], leases['6']) <= tonumber(unregistered) + 3000 then return { 'tomb', current } end
for _, family in ipairs({ '4', '6' }) do
  if #new[family] > 0 and lease(id, family) > leases[family] + TOLERANCE then return { 'stale', current } end
end

-- L8: a new server replaces the one at its endpoint, unless its registration was received later, or is known from its own replies (W38).
local replaced, order = {}, {}
for _, family in ipairs({ '4', '6' }) do
  if #new[family] > 0 then
    local key = endpoint_key(transport, new[family])
    local holder = redis.call('HGET', AT, key)
    local other = holder and holder ~= id and parse(redis.call('HGET', ENTRY, holder))
    -- Another program may have named a server that is elsewhere.
    if other and #other[family] > 0 and endpoint_key(other.transport, other[family]) == key then
      if other.origin > origin or (other.origin == origin and origin > 0) then return { 'taken', current } end
      if other.origin == origin and latest_lease(holder) > leases[family] + TOLERANCE then return { 'stale', current } end
      if not replaced[holder] then order[#order + 1] = holder end
      replaced[holder] = other
    end
  end
end

-- The endpoint of the other family stays, unless another server has it with the new transport.
for _, family in ipairs({ '4', '6' }) do
  if #new[family] == 0 and old and #old[family] > 0 then
    local holder = redis.call('HGET', AT, endpoint_key(transport, old[family]))
    if not holder or holder == id or replaced[holder] then new[family] = old[family] end
  elseif #new[family] > 0 then
    redis.call('ZADD', LEASE, 'GT', string.format('%.0f', leases[family]), family .. id)
  end
end
if old and emit(0, old) == emit(0, new) then return { 'done', string.format('%.0f', old.seq) } end
if old then unbind(id, old) end
for _, family in ipairs({ '4', '6' }) do
  if #new[family] > 0 then
    redis.call('HSET', AT, endpoint_key(transport, new[family]), id)
  else
    redis.call('ZREM', LEASE, family .. id)
  end
end
local seq = next_seq()
value = emit(seq, new)
redis.call('HSET', ENTRY, id, value)
append('put', id, value, token, seq)
-- Afterwards: a node that has proven one of these keeps it with the server that replaces it (W45).
for _, holder in ipairs(order) do delete(holder, replaced[holder], 'replaced', token) end
return { 'done', string.format('%.0f', seq) }
