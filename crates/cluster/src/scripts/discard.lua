-- Deletes entries that a node cannot read, as long as they have not changed. Arguments: IDs and values. The nodes of these servers then
-- write them again.
for index = 1, #ARGV, 2 do
  if redis.call('HGET', ENTRY, ARGV[index]) == ARGV[index + 1] then redis.call('HDEL', ENTRY, ARGV[index]) end
end
return 'done'
