// A gateway with a consumer that is slow in the middle of its transaction. It imports no package: those of dist are others.
const load = (file) => import(new URL(`../../dist/src/${file}`, import.meta.url));
const { LogConsumers } = await load('consumers/log-consumers.js');
const { PosternModule } = await load('postern.module.js');
const { PosternFactory } = await load('runtime/postern-factory.js');

async function rows(manager, given) {
  for (const { id } of given) await manager.query('INSERT INTO book VALUES ($1)', [id]);
  process.stdout.write(`written ${given.length}\n`);
  await manager.query('SELECT pg_sleep(0.5)');
}

class Books {}
const books = {
  module: Books,
  providers: [
    {
      provide: 'books',
      inject: [LogConsumers],
      useFactory: (consumers) => consumers.register('books', { from: 'start', rows }),
    },
  ],
};

class Root {}
Reflect.defineMetadata('imports', [PosternModule.forRoot(), books], Root);

await PosternFactory.run(Root);
