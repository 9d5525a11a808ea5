import proxy from '@fastify/http-proxy';
import fastify from 'fastify';

const app = fastify({ bodyLimit: 2 ** 30 });
await app.register(proxy, { upstream: process.argv[2] });
await app.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 });
process.stdout.write(`listening on ${app.server.address().port}\n`);
process.stdin.on('end', () => process.exit(0)).resume();
process.on('SIGTERM', () => process.exit(0));
