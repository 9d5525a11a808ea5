// An open loop: calls are due at a fixed rate, whatever became of the ones before. How long does a caller wait?
// Each is timed from the moment it was due, not from the moment it could be sent: else a gateway that stalls would hide
// the waiting of all calls that were held back meanwhile (coordinated omission).
import { Schedule } from '../statistics.mjs';
import { openConnections } from './connection.mjs';
import { startTicker } from './ticker.mjs';

const DRAIN_MS = 10_000;

/**
 * @param port of one gateway, or of several that are called in turn
 * @param request its bytes, or what makes those of the next one
 * @returns latencies in ms from the moment each call was due, `waits` from the moment it was sent, `lateness`: how late this
 * generator itself sent calls for which a connection was free
 */
export async function openLoop({ port, request, ratePerSecond, connections, forMs }) {
  const ports = [port].flat();
  const idle = (
    await Promise.all(ports.map((one) => openConnections(one, connections / ports.length)))
  ).flat();
  const all = [...idle];
  const waiting = [];
  const latencies = [];
  const waits = [];
  const lateness = [];
  const total = Math.round((forMs / 1_000) * ratePerSecond);
  let stopTicker = async () => {};
  try {
    await new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('calls were not answered in time')), forMs + DRAIN_MS);
      const settle = (error) => {
        clearTimeout(timer);
        if (error) reject(error);
        else resolve();
      };
      const send = (connection, due) => {
        const sentAt = performance.now();
        connection.onAnswer = (status) => {
          const now = performance.now();
          latencies.push(now - due);
          waits.push(now - sentAt);
          if (status !== 200) return settle(new Error(`a call was answered with ${status}`));
          if (latencies.length === total) return settle();
          if (waiting.length > 0) send(connection, waiting.shift());
          else idle.push(connection);
        };
        connection.send(typeof request === 'function' ? request() : request);
      };
      for (const connection of all) connection.fail = settle;
      const schedule = new Schedule(performance.now() + 5, ratePerSecond);
      stopTicker = startTicker(Math.min(1, schedule.apart) / 2, () => {
        const now = performance.now();
        for (let left = Math.min(schedule.due(now), total - schedule.next); left > 0; left--) {
          const due = schedule.take();
          if (idle.length === 0) {
            waiting.push(due);
            continue;
          }
          lateness.push(now - due);
          send(ports.length > 1 ? idle.shift() : idle.pop(), due);
        }
      });
    });
  } finally {
    await stopTicker();
    for (const connection of all) connection.close();
  }
  return { calls: total, latencies, waits, lateness };
}
