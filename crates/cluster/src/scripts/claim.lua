-- Claims a reachability check. Keys: the check. Arguments: node, time for the check in ms.
-- Returns the result of another node that is still valid, the node that is checking, or that the check is this node's.
local known = redis.call('GET', KEYS[1])
-- A result is short; anything longer is another program's. A claim of the same node is left from a check without a result.
if known and known ~= 'n' .. ARGV[1] and #known <= 64 then return known end
redis.call('SET', KEYS[1], 'n' .. ARGV[1], 'PX', ARGV[2])
return 'granted'
