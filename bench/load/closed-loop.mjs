// A closed loop: each connection sends its next call when it has the answer to the last. What can be done at most?
import { openConnections } from './connection.mjs';

/** How long the last answers may take once no new call is made: some gateways take 50 ms of processor time for each. */
const DRAIN_MS = 60_000;

/** Ends after `forMs`, or once about `most` calls were made. `calls`: all that were made, each of them answered. */
export async function closedLoop({ port, request, connections, forMs, most = Infinity }) {
  const open = await openConnections(port, connections);
  const begin = performance.now();
  const end = begin + forMs;
  let answered = 0;
  let sent = 0;
  let last = begin;
  try {
    await new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('calls were not answered in time')), forMs + DRAIN_MS);
      let running = open.length;
      const settle = (error) => {
        clearTimeout(timer);
        if (error) reject(error);
        else resolve();
      };
      for (const connection of open) {
        connection.fail = settle;
        connection.onAnswer = (status) => {
          answered++;
          if (status !== 200) return settle(new Error(`a call was answered with ${status}`));
          last = performance.now();
          if (last < end && sent < most) {
            sent++;
            connection.send(request);
          } else if (--running === 0) settle();
        };
        sent++;
        connection.send(request);
      }
    });
  } finally {
    for (const connection of open) connection.close();
  }
  if (answered !== sent) throw new Error(`${sent} calls, but ${answered} answers`);
  return { calls: answered, ms: last - begin };
}
