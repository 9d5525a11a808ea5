import 'reflect-metadata';
import { AppModule } from './app.module.js';
import { PosternFactory } from './runtime/postern-factory.js';

await PosternFactory.run(AppModule);
