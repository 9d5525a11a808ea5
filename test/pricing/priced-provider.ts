import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';

/** A gateway with a provider that reports the usage that a test asks for. */
export interface Priced {
  gateway: TestGateway;
  provider: RawProvider;
  /** Makes a call. @returns its row */
  call(
    provider: string,
    model: string,
    usage: object | null,
  ): Promise<Record<string, unknown> & { id: string }>;
}

/** @param first the gateway of whose database and key this one is a replica */
export async function startPriced(first?: Priced): Promise<Priced> {
  let usage: object | null = null;
  const provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(
      answer('200 OK', ['Content-Type: application/json'], JSON.stringify(usage === null ? {} : { usage })),
    );
  });
  const gateway = await startTestGateway({}, first?.gateway.database);
  return {
    gateway,
    provider,
    call: async (name, model, reported) => {
      usage = reported;
      const response = await fetch(`${gateway.url}/p/${name}/v1/chat/completions`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${(first?.gateway ?? gateway).key}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify({ model }),
      });
      await response.text();
      return gateway.row(response.headers.get('x-gateway-request-id')!);
    },
  };
}
