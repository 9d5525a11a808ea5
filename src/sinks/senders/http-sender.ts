import { Client } from 'undici';
import type { UpstreamConnector } from '../../proxy/upstream/upstream-connector.js';
import type { SinkAccess } from '../sink-secrets.service.js';
import { connectionError } from './connection-error.js';
import { SEND_TIMEOUT, SinkError, type SinkMessage, type SinkSender } from './sink-sender.js';

/** Of the response, of which only the status is used. */
const MAX_BYTES = 65_536;

/**
 * Sends each message with POST as NDJSON. The receiver has a message when it responds with a status from 200 to 299. It
 * may get a message again, with the same `Idempotency-Key`.
 */
export class HttpSender implements SinkSender {
  readonly format = { rows: 20_000, bytes: 16 * 1_024 * 1_024, lines: 'objects' } as const;
  private readonly client: Client;
  private readonly path: string;
  private readonly secret: string | null;

  constructor({ url, secret }: SinkAccess, connect: UpstreamConnector) {
    const { origin, pathname, search } = new URL(url);
    this.client = new Client(origin, {
      connect: (options, callback) => void connect(options, callback),
      headersTimeout: SEND_TIMEOUT.ms,
      bodyTimeout: SEND_TIMEOUT.ms,
    });
    this.path = pathname + search;
    this.secret = secret;
  }

  async send({ id, body }: SinkMessage): Promise<void> {
    let status: number;
    try {
      const response = await this.client.request({
        method: 'POST',
        path: this.path,
        headers: {
          'content-type': 'application/x-ndjson',
          'user-agent': 'Postern',
          'idempotency-key': id,
          ...(this.secret !== null && { authorization: `Bearer ${this.secret}` }),
        },
        body: `${body}\n`,
        signal: AbortSignal.timeout(SEND_TIMEOUT.ms),
      });
      status = response.statusCode;
      await response.body.dump({ limit: MAX_BYTES });
    } catch (error) {
      if ((error as { code?: unknown }).code === 'UND_ERR_INVALID_ARG')
        throw new SinkError(
          'The secret has a character that no header may have. Change the secret of the sink.',
        );
      throw connectionError(error);
    }
    if (status >= 200 && status < 300) return;
    if (status >= 300 && status < 400)
      throw new SinkError(`The receiver redirects (status ${status}). Use the final URL.`);
    // Without the text of the response: the URL may be that of any service inside, and viewers read this.
    throw new SinkError(
      status === 401 || status === 403
        ? `The receiver rejected the secret (status ${status}). Change the secret of the sink.`
        : status === 413
          ? 'The receiver rejected a request as too large (status 413). Let it accept 20 MB.'
          : `The receiver responded with status ${status}. It must respond with a status from 200 to 299.`,
    );
  }

  async close(): Promise<void> {
    await this.client.destroy();
  }
}
