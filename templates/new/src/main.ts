import { PosternFactory } from 'postern';
import { AppModule } from './app.module.js';

await PosternFactory.run(AppModule);
