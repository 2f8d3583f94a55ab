# Builds the machine's file system, then becomes bubblewrap. Run by sh in new user and mount namespaces:
#   sh setup.sh BASE SIZE_MB BWRAP_ARGUMENT...
# BASE is an empty folder. All mounts are seen in this namespace only and vanish with it.
set -eu
umask 022
base=$1
size=$2
shift 2

mount -t tmpfs -o "size=${size}m,nr_inodes=200000,mode=755" tmpfs "$base"
root=$base/root
mkdir "$root"
cd "$root"
mkdir -p app dev home media mnt opt proc root run srv sys tmp etc usr var/cache var/log var/mail var/spool/cron var/tmp \
    var/lib/dpkg var/lib/misc opt/harnesslab/modules run/harnesslab
chmod 700 root
chmod 1777 tmp var/tmp
ln -s /run var/run

# Programs and settings of this system, copy on write. Nothing else of the host is in reach.
for layer in usr etc var/lib/dpkg; do
    [ -d "/$layer" ] || continue
    mkdir -p "$base/upper/$layer" "$base/scratch/$layer"
    mount -t overlay -o "lowerdir=/$layer,upperdir=$base/upper/$layer,workdir=$base/scratch/$layer,userxattr" overlay "$layer" 2>/dev/null ||
        mount -t overlay -o "lowerdir=/$layer,upperdir=$base/upper/$layer,workdir=$base/scratch/$layer" overlay "$layer"
done
for link in /bin /sbin /lib*; do
    if [ -L "$link" ]; then
        cp -P "$link" "$root$link"
    elif [ -d "$link" ]; then
        mkdir -p "$root$link" "$base/upper$link" "$base/scratch$link"
        mount -t overlay -o "lowerdir=$link,upperdir=$base/upper$link,workdir=$base/scratch$link" overlay "$root$link"
    fi
done

# Secrets of the host, as far as its root can read them.
if [ -r etc/shadow ]; then
    sed 's/^\([^:]*\):[^:]*:/\1:*:/' /etc/shadow > "$base/shadow"
    cat "$base/shadow" > etc/shadow
    rm -f etc/shadow- etc/gshadow-
fi
rm -rf etc/ssh etc/ssl/private etc/sudoers.d etc/krb5.keytab etc/netrc 2>/dev/null || :
: > etc/resolv.conf 2>/dev/null || :
echo '127.0.0.1 localhost machine' > etc/hosts

# No further namespaces: most holes of the kernel are reached through them. The number is one of this namespace.
echo 0 > /proc/sys/user/max_user_namespaces 2>/dev/null || :

exec bwrap "$@"
