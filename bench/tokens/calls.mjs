// One call with each of many tokens.
import { openConnections } from '../load/connection.mjs';
import { chatRequest } from '../load/request.mjs';

/** @returns ms. @throws Error for a status other than 200 */
export async function callOnceEach(port, tokens, connections) {
  const open = await openConnections(port, connections);
  const begin = performance.now();
  let next = 0;
  try {
    await Promise.all(
      open.map(
        (connection) =>
          new Promise((done, fail) => {
            connection.fail = fail;
            const send = () => {
              if (next === tokens.length) return done();
              const headers = { Authorization: `Bearer ${tokens[next++]}` };
              // Unknown keys and tokens have a bound for each address.
              headers['X-Forwarded-For'] = `10.${next >> 16}.${(next >> 8) & 255}.${next & 255}`;
              connection.send(chatRequest({ port, headers }));
            };
            connection.onAnswer = (status) => {
              if (status !== 200) return fail(new Error(`a call was answered with ${status}`));
              send();
            };
            send();
          }),
      ),
    );
  } finally {
    for (const connection of open) connection.close();
  }
  return performance.now() - begin;
}
