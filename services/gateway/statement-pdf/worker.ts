import { parentPort, workerData } from 'node:worker_threads';
import { statementPdf } from './statement-pdf.ts';

/** The thread that generates one PDF from `workerData` and posts the file. */
const file = await statementPdf(workerData);
parentPort?.postMessage(file);
