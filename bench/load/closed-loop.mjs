// A closed loop: each connection sends its next call when it has the answer to the last. What can be done at most?
import { openConnections } from './connection.mjs';

/** How long the last answers may take once no new call is made: some gateways take 50 ms of processor time for each. */
const DRAIN_MS = 60_000;

/**
 * Ends after `forMs`, or once about `most` calls were made. `calls`: all that were made, each of them answered.
 *
 * @param request the bytes of each call, or what returns those of the next one
 * @param onTime called with the ms that each call took
 */
export async function closedLoop({ port, request, connections, forMs, most = Infinity, onTime = null }) {
  const open = await openConnections(port, connections);
  const next = typeof request === 'function' ? request : () => request;
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
        let sentAt = 0;
        const send = () => {
          sent++;
          sentAt = performance.now();
          connection.send(next());
        };
        connection.onAnswer = (status) => {
          answered++;
          if (status !== 200) return settle(new Error(`a call was answered with ${status}`));
          last = performance.now();
          onTime?.(last - sentAt);
          if (last < end && sent < most) send();
          else if (--running === 0) settle();
        };
        send();
      }
    });
  } finally {
    for (const connection of open) connection.close();
  }
  if (answered !== sent) throw new Error(`${sent} calls, but ${answered} answers`);
  return { calls: answered, ms: last - begin };
}
