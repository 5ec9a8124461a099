// Queries the servers of a list with gamedig (npm), a given number concurrently, and prints a line for each reply.
import { readFileSync } from 'node:fs'
import { GameDig } from 'gamedig'

const [list, port, concurrency, attempts, timeout] = process.argv.slice(2)
const hosts = readFileSync(list, 'utf8').trim().split('\n')
const dig = new GameDig()
let next = 0
async function worker () {
  while (next < hosts.length) {
    const host = hosts[next++]
    try {
      const state = await dig.query({
        type: 'protocol-quake3', host, address: host, port: Number(port), givenPortOnly: true,
        maxRetries: Number(attempts), socketTimeout: Number(timeout), attemptTimeout: 4 * Number(timeout)
      })
      process.stdout.write(`${host} ${state.name}\n`)
    } catch { /* not found */ }
  }
}
await Promise.all(Array.from({ length: Number(concurrency) }, worker))
