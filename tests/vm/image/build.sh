#!/usr/bin/env bash
# Make what a virtual machine boots: kernel, initrd and root file system of a Debian
# suite, with the modules of Soft-RoCE, and fakeib.ko built for that kernel.
#
# usage: build.sh SUITE FAKEIB FOLDER     (as root; FOLDER must not exist)
#
# Writes FOLDER/{vmlinuz,initrd,root.img,fakeib.ko}. Exit status 75: Debian's packages
# could not be had, which says nothing about this script.
set -euo pipefail
export LC_ALL=C

suite=$1 fakeib=$2 folder=$3
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/root new=$work/new

# ibverbs-utils brings traffic, infiniband-diags ibstat. Headers and make are for the
# module, and leave before the image is made.
packages=(systemd systemd-sysv udev dbus kmod iproute2 procps rdma-core
  ibverbs-providers ibverbs-utils infiniband-diags python3 busybox-static cpio
  linux-headers-amd64 make)
# Modules that the boot needs, and all: with what they depend on.
boot=(virtio_pci virtio_blk ext4)
modules=("${boot[@]}" virtio-rng 9p 9pnet_virtio veth sch_netem autofs4 configfs
  rdma_rxe ib_uverbs ib_umad rdma_ucm crc32_generic crc32c_generic)

# List the files of modules with all they depend on, in order.
module_files() {
  local module
  for module; do
    chroot "$root" modprobe -d kernel -S "$version" --show-depends "$module"
  done | sed -n 's,^insmod */*kernel/*\([^ ]*\).*,\1,p' | awk '!seen[$0]++'
}

install_packages() {
  local list
  list=$(IFS=,; echo "${packages[*]}")
  # The kernel's own package would make an initrd that nobody needs: it is unpacked.
  TMPDIR=$work mmdebstrap --quiet --variant=minbase --mode=root --include="$list" \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook='chroot "$1" sh -c "
      set -eu; mkdir /kernel; cd /kernel
      name=\$(apt-cache depends linux-image-amd64 |
        sed -n \"s/.*Depends: \\(linux-image-[0-9].*\\)/\\1/p\" | head -n 1)
      apt-get -q -o APT::Sandbox::User=root download \"\$name\"
      dpkg-deb -x ./*.deb . && rm ./*.deb"' \
    "$suite" "$root" || exit 75
  [[ -e $root/kernel/lib ]] || ln -s usr/lib "$root/kernel/lib"
  version=$(basename "$root"/kernel/lib/modules/*)
}

build_fakeib() {
  cp -r "$fakeib" "$root/fakeib"
  chroot "$root" make -s -C "/usr/src/linux-headers-$version" M=/fakeib modules
  cp "$root/fakeib/fakeib.ko" "$new/"
  rm -rf "$root"/fakeib "$root"/usr/src/* "$root"/usr/lib/gcc "$root"/usr/lib/linux-*
}

install_kernel() {
  local tree=lib/modules/$version
  cp "$root/kernel/boot/vmlinuz-$version" "$new/vmlinuz"
  chroot "$root" depmod -b kernel "$version"
  {
    echo "$tree"/modules.{order,builtin,builtin.modinfo} | tr ' ' '\n'
    module_files "${modules[@]}"
  } | tar -C "$root/kernel" -cf - -T - | tar -C "$root/usr" -xf -
  chroot "$root" depmod "$version"
}

# The smallest initrd that reaches the disk: busybox and three modules.
make_initrd() {
  local initrd=$root/kernel/initrd file name
  mkdir -p "$initrd"/{bin,dev,proc,new,modules}
  cp "$root/bin/busybox" "$initrd/bin/"
  install -m 755 "$here/init" "$initrd/init"
  module_files "${boot[@]}" | while read -r file; do
    name=$(basename "$file")
    cp "$root/kernel/$file" "$initrd/modules/"
    if [[ $name == *.xz ]]; then
      chroot "$root" busybox unxz "/kernel/initrd/modules/$name"
      name=${name%.xz}
    fi
    echo "$name"
  done >"$initrd/modules/order"
  chroot "$root" sh -c 'cd kernel/initrd && find . | cpio --quiet -o -H newc' |
    gzip -1 >"$new/initrd"
  rm -rf "$root/kernel"
}

install_guest() {
  echo vm >"$root/etc/hostname"
  echo "127.0.0.1 localhost vm" >"$root/etc/hosts"
  echo "/dev/vda / ext4 noatime 0 0" >"$root/etc/fstab"
  : >"$root/etc/machine-id"
  mkdir -p "$root/share" "$root/out"
  install -m 755 \
    "$here"/rxe-up "$here"/rxe-wire "$here"/run-task "$root/usr/local/sbin/"
  install -m 644 "$here"/task.{service,target} "$root/etc/systemd/system/"
  chroot "$root" systemctl --quiet mask apt-daily.timer apt-daily-upgrade.timer \
    dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer \
    getty.target systemd-pstore.service systemd-update-utmp.service \
    systemd-update-utmp-runlevel.service
}

mkdir "$new"
install_packages
build_fakeib
install_kernel
make_initrd
install_guest
size=$(($(du -sm "$root" | cut -f1) + 256))
PATH=$PATH:/usr/sbin:/sbin mke2fs -q -F -t ext4 -O ^has_journal \
  -E lazy_itable_init=1 -d "$root" "$new/root.img" "${size}M"
mv "$new" "$folder"
