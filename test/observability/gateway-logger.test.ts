import { GatewayLogger } from '../../src/observability/gateway-logger.js';

const SETTINGS = { nodeEnv: 'development', logLevel: 'info', worker: 1, workers: 1 } as const;

/** What this logger writes, by stream. */
function written(
  settings: Partial<ConstructorParameters<typeof GatewayLogger>[0]>,
  tell: (to: GatewayLogger) => void,
) {
  const seen = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    jest.spyOn(process[name], 'write').mockImplementation((text) => {
      seen[name] += String(text);
      return true;
    });
  }
  tell(new GatewayLogger({ ...SETTINGS, ...settings }));
  jest.restoreAllMocks();
  return seen;
}

it('keeps a line one line, and terminals unharmed, whatever the names in it are', () => {
  const { stdout } = written({}, (logger) => logger.warn('the team a\nb\u001b[2J\u009b is "x"', 'Audit'));
  expect(stdout).toMatch(/^\S+Z WARN {2}Audit: the team a\?b\?\[2J\? is "x"\n$/);
});

it('does so with the message of an error, in its stack too, and with the context', () => {
  const { stderr } = written({}, (logger) =>
    logger.error(
      new Error('no team "\n2026-01-01T00:00:00.000Z INFO  Keys: all is well\u001b[2J"'),
      'Au\ndit',
    ),
  );
  const lines = stderr.trimEnd().split('\n');
  expect(lines[0]).toMatch(/Z ERROR Au\?dit: no team "\?2026-/);
  expect(lines.slice(1).every((line) => line.startsWith('    '))).toBe(true);
  expect(lines[3]).toMatch(/^ {4}at /);
  expect(stderr).not.toContain('\u001b');
});

it.each(['development', 'production'] as const)(
  'reports errors on standard error, with their stack, in %s',
  (nodeEnv) => {
    const { stdout, stderr } = written({ nodeEnv }, (logger) => {
      logger.error('Call 1 failed', 'Error: why\n    at here', { request_id: '1' }, 'Proxy');
      logger.fatal(new Error('lost'), 'RequestLog');
      logger.log('well', 'Proxy');
    });
    expect(stdout.split('\n')).toHaveLength(2);
    for (const word of ['Call 1 failed', 'at here', 'lost', 'RequestLog']) expect(stderr).toContain(word);
  },
);

it('tells nothing below LOG_LEVEL, and the framework only when debugging', () => {
  const tell = (logger: GatewayLogger) => {
    logger.log('Mapped {/v1}', 'RouterExplorer');
    logger.log('here', 'Database');
    logger.debug('there', 'Database');
  };
  const words = (text: string) => text.split('\n').map((line) => line.split(' ').at(-1));
  expect(words(written({ logLevel: 'warn' }, tell).stdout)).toEqual(['']);
  expect(words(written({ logLevel: 'info' }, tell).stdout)).toEqual(['here', '']);
  expect(words(written({ logLevel: 'debug' }, tell).stdout)).toEqual(['{/v1}', 'here', 'there', '']);
  expect(written({ logLevel: 'silent' }, (logger) => logger.fatal('x', 'y')).stderr).toBe('');
});

it('tells the worker where there are several', () => {
  const { stdout } = written({ nodeEnv: 'production', worker: 2, workers: 2 }, (logger) =>
    logger.log('x', 'y'),
  );
  expect(JSON.parse(stdout)).toMatchObject({ worker: 2, level: 'info', msg: 'x', context: 'y' });
});
