/** The image's HEALTHCHECK: reports whether the process in this container is ready, and if not, why. */
import { get } from 'node:http';

const port = process.env.HEALTH_PORT || 9090;
// Until there is a response, in whatever way the connection ends.
process.exitCode = 1;
get({ host: '127.0.0.1', port, path: '/readyz', timeout: 2500 }, (response) => {
  process.exitCode = response.statusCode === 200 ? 0 : 1;
  response.pipe(process.stdout);
})
  .on('timeout', function () {
    this.destroy(new Error('no response'));
  })
  .on('error', ({ message }) => console.log(message));
