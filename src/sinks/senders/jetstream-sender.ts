import { jetstream, type JetStreamClient, jetstreamManager, type JetStreamManager } from '@nats-io/jetstream';
import {
  connect,
  type ConnectionOptions,
  credsAuthenticator,
  type NatsConnection,
} from '@nats-io/transport-node';
import { resolveAllowed } from '../../proxy/upstream/upstream-connector.js';
import type { SinkAccess } from '../sink-secrets.service.js';
import { connectionError } from './connection-error.js';
import {
  excerpt,
  OPEN_TIMEOUT,
  SEND_TIMEOUT,
  SinkError,
  type SinkMessage,
  type SinkSender,
} from './sink-sender.js';

/** Below the 1 MB that a server accepts by default, with one row of the largest size. */
const FORMAT = { rows: 500, bytes: 700_000, lines: 'objects' } as const;
const NEEDED_PAYLOAD = 900_000;
/** A message that is sent again within this time is recognised by its ID. */
const DUPLICATE_WINDOW_HOURS = 24;
const NANOSECONDS_PER_HOUR = 3_600_000_000_000;
const ID = 'Nats-Msg-Id';

/**
 * Publishes each message to a subject and waits until the stream has stored it. The stream drops a message whose ID it has
 * seen within its duplicate window. One message is under way at a time, so that the last ID of the subject also tells what
 * was stored before.
 */
export class JetStreamSender implements SinkSender {
  readonly format = FORMAT;

  private constructor(
    private readonly connection: NatsConnection,
    private readonly client: JetStreamClient,
    private readonly manager: JetStreamManager,
    private readonly stream: string,
    private readonly subject: string,
  ) {}

  /** @throws SinkError if there is no such stream, or it drops IDs too early */
  static async open({ url, secret }: SinkAccess, subject: string): Promise<JetStreamSender> {
    const { hostname, port, protocol } = new URL(
      url.replace(/^[a-z]+/, (scheme) => (scheme === 'tls' ? 'https' : 'http')),
    );
    const isSecure = protocol === 'https:';
    let connection: NatsConnection | undefined;
    try {
      const address = await resolveAllowed(hostname, !isSecure);
      connection = await connect({
        servers: `${address.includes(':') ? `[${address}]` : address}:${port || (isSecure ? '443' : '80')}`,
        // Other servers of the cluster may have addresses that are not allowed.
        ignoreClusterUpdates: true,
        reconnect: false,
        timeout: OPEN_TIMEOUT.ms,
        name: 'postern',
        ...(isSecure && {
          tls: { servername: hostname.replace(/^\[|\]$/g, '') } as ConnectionOptions['tls'],
        }),
        ...authentication(secret),
      });
      const manager = await jetstreamManager(connection, { timeout: OPEN_TIMEOUT.ms });
      const stream = await findStream(connection, manager, subject);
      return new JetStreamSender(
        connection,
        jetstream(connection, { timeout: SEND_TIMEOUT.ms }),
        manager,
        stream,
        subject,
      );
    } catch (error) {
      await connection?.close();
      throw natsError(error);
    }
  }

  async send({ id, body }: SinkMessage): Promise<void> {
    try {
      await this.client.publish(this.subject, body, {
        msgID: id,
        timeout: SEND_TIMEOUT.ms,
        expect: { streamName: this.stream },
      });
    } catch (error) {
      throw natsError(error);
    }
  }

  async lastId(): Promise<string | null> {
    try {
      const message = await this.manager.streams.getMessage(this.stream, { last_by_subj: this.subject });
      return message?.header.get(ID) ?? null;
    } catch (error) {
      throw natsError(error);
    }
  }

  close(): Promise<void> {
    return this.connection.close();
  }
}

async function findStream(
  { info }: NatsConnection,
  manager: JetStreamManager,
  subject: string,
): Promise<string> {
  if ((info?.max_payload ?? 0) < NEEDED_PAYLOAD)
    throw new SinkError(
      `The server accepts messages of ${info?.max_payload ?? 0} bytes. Set max_payload to 1MB or more.`,
    );
  let name: string;
  try {
    name = await manager.streams.find(subject);
  } catch (error) {
    if (!/no stream matches subject/i.test((error as Error).message)) throw error;
    throw new SinkError(
      `No stream has the subject ${subject}. Create one: nats stream add POSTERN --subjects ${subject} --dupe-window 24h`,
    );
  }
  const { config } = await manager.streams.info(name);
  if (config.duplicate_window < DUPLICATE_WINDOW_HOURS * NANOSECONDS_PER_HOUR) {
    throw new SinkError(
      `The stream ${name} drops the IDs of messages too early. Run: nats stream edit ${name} --dupe-window 24h`,
    );
  }
  if (config.no_ack)
    throw new SinkError(`The stream ${name} does not acknowledge messages. Create it without no_ack.`);
  return name;
}

/** `user:password`, a token, or the text of a credentials file. */
function authentication(secret: string | null): ConnectionOptions {
  if (secret === null) return {};
  if (secret.includes('BEGIN NATS USER JWT'))
    return { authenticator: credsAuthenticator(new TextEncoder().encode(secret)) };
  const at = secret.indexOf(':');
  return at === -1 ? { token: secret } : { user: secret.slice(0, at), pass: secret.slice(at + 1) };
}

function natsError(error: unknown): SinkError {
  if (error instanceof SinkError) return error;
  const { name = '', message = '', cause } = (error ?? {}) as Error;
  if (name === 'AuthorizationError' || /authorization violation|authentication/i.test(message))
    return new SinkError(
      'The server rejected the secret. Change it: user:password, a token, or the text of a credentials file.',
    );
  if (name === 'PermissionViolationError' || /permissions violation/i.test(message))
    return new SinkError(
      `The user may not do this: ${excerpt(message)}. Allow it to publish, and to use $JS.API.`,
    );
  if (name === 'JetStreamNotEnabled' || /jetstream (is )?not enabled/i.test(message))
    return new SinkError('JetStream is not enabled. Start the server with it, or enable it for the account.');
  if (name === 'TimeoutError') return connectionError(error);
  if (name === 'ClosedConnectionError' || name === 'ConnectionError' || cause !== undefined)
    return connectionError(
      cause ?? Object.assign(new Error(message), { code: /refused/.test(message) ? 'ECONNREFUSED' : '' }),
    );
  if (
    (error as { code?: unknown } | null)?.code !== undefined &&
    typeof (error as { code: unknown }).code === 'string'
  )
    return connectionError(error);
  return new SinkError(`JetStream: ${excerpt(message)}`);
}
